"""A proxy for clients that can send no key: it adds one to each request, and passes everything else on."""

import contextlib
import http.client
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# They belong to a connection, or are set by who sends.
OF_THE_CONNECTION = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


@contextlib.contextmanager
def proxy(url, key):
    """Yields the address of a proxy. An `Origin` that is the proxy's own becomes the server's own."""
    server = urllib.parse.urlsplit(url)

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            named = {name.lower(): value for name, value in self.headers.items()}
            headers = {name: value for name, value in named.items() if name not in OF_THE_CONNECTION}
            if headers.get("origin") == own:
                headers["origin"] = f"{server.scheme}://{server.netloc}"
            connection = http.client.HTTPConnection(server.netloc)
            connection.request(self.command, server.path, body, headers | {"authorization": f"Bearer {key}"})
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in OF_THE_CONNECTION:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            connection.close()

        do_GET = do_POST = do_DELETE = do_OPTIONS = pass_on

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as listening:
        # A client that ends leaves its connections.
        listening.handle_error = lambda *_: None
        own = f"http://127.0.0.1:{listening.server_port}"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield own + server.path
        listening.shutdown()
