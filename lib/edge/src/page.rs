//! HTML pages for people. Their headers keep them out of caches, frames, search engines and `Referer`. A page with a
//! form has a script, and works without the script.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use domain::html::escape;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

use crate::inbound::Inbound;
use crate::problem::Problem;
use crate::reply::log_fault;

const STYLE: &str = include_str!("page.css");
/// Sends a page's form once.
const SCRIPT: &str = include_str!("page.js");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const ROBOTS_TAG: HeaderName = HeaderName::from_static("x-robots-tag");

/// A page before it becomes an HTTP response.
#[derive(Debug, Clone)]
pub struct Page {
    status: StatusCode,
    title: String,
    main: String,
    form_target: Option<String>,
}

impl Page {
    /// A page. `title` is text; `main` is HTML, the page's one `h1` included.
    pub fn new(status: StatusCode, title: &str, main: impl Into<String>) -> Self {
        Self { status, title: title.to_owned(), main: main.into(), form_target: None }
    }

    /// Allows the page's forms to be posted to the page's own origin and redirected from there to `origin`. Browsers
    /// apply the policy of the page with the form to redirects, too. Without this a page sends no forms.
    pub fn with_forms_to(mut self, origin: &str) -> Self {
        self.form_target = Some(origin.to_owned());
        self
    }

    /// A problem as a page. A fault is logged here, once, under an `event_id` that the page shows.
    pub fn problem(problem: &Problem) -> Self {
        let status = problem.code().status();
        let (title, text) = match problem {
            Problem::Internal(fault) => {
                let fault_id = log_fault(fault);
                let text = format!(
                    "Please try again in a moment. If it stays like this, give support this reference: <code>{fault_id}</code>"
                );
                ("Something went wrong on our side", text)
            }
            other => ("This did not work", escape(&other.to_string())),
        };
        Self::new(status, title, format!("<h1>{title}</h1>\n<p>{text}</p>"))
    }

    /// The response.
    pub fn into_response_for(self, inbound: &Inbound) -> Response {
        let Self { status, title, main, form_target } = self;
        let title = escape(&title);
        let script = form_target.as_ref().map_or_else(String::new, |_| format!("<script>{SCRIPT}</script>\n"));
        let html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"robots\" content=\"noindex\">\n<title>{title}</title>\n<style>{STYLE}</style>\n{script}</head>\n\
             <body>\n<main>\n{main}\n</main>\n</body>\n</html>\n"
        );
        let mut response = (status, Body::from(html)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        keep_private(headers, &policy(form_target.as_deref()), inbound);
        response
    }
}

/// Redirects to a URL: by 303 a browser that has posted a form, by 308 from another address of the same page.
pub fn redirect(status: StatusCode, url: &str, inbound: &Inbound) -> Result<Response, Problem> {
    let location = HeaderValue::from_str(url).map_err(|error| Problem::internal("send a browser on", error))?;
    let mut response = status.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    keep_private(headers, &policy(None), inbound);
    Ok(response)
}

fn keep_private(headers: &mut HeaderMap, policy: &str, inbound: &Inbound) {
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (ROBOTS_TAG, "noindex"),
        (REQUEST_ID, inbound.request_id.as_str()),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

/// The Content-Security-Policy: only the page's own style and script, named by their hashes.
fn policy(form_target: Option<&str>) -> String {
    let hash = |text: &str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)));
    let style = hash(STYLE);
    let (script, forms) = match form_target {
        None => (String::new(), "'none'".to_owned()),
        Some(origin) => (format!("script-src {}; ", hash(SCRIPT)), format!("'self' {origin}")),
    };
    format!(
        "default-src 'none'; style-src {style}; {script}form-action {forms}; base-uri 'none'; frame-ancestors 'none'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::extract::FromRequest;
    use http_body_util::BodyExt;

    async fn rendered(page: Page) -> (HeaderMap, String) {
        let request = http::Request::new(Body::empty());
        let inbound = Inbound::from_request(request, &()).await.unwrap();
        let (parts, body) = page.into_response_for(&inbound).into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (parts.headers, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_page_may_only_use_its_own_style_and_script_and_send_its_form() {
        let page = Page::new(StatusCode::OK, "<Sign in>", "<h1>Sign in</h1>");
        let (headers, html) = rendered(page.clone()).await;
        assert!(html.contains("<title>&lt;Sign in&gt;</title>"), "{html}");
        let style = html.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let digest = STANDARD.encode(Sha256::digest(style));
        let expected = format!(
            "default-src 'none'; style-src 'sha256-{digest}'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
        );
        assert_eq!(headers[header::CONTENT_SECURITY_POLICY], expected);
        assert!(!html.contains("<script"), "{html}");

        let (headers, html) = rendered(page.with_forms_to("https://coach.example.com")).await;
        let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.contains("; form-action 'self' https://coach.example.com; "), "{policy}");
        let script = html.split("<script>").nth(1).unwrap().split("</script>").next().unwrap();
        let digest = STANDARD.encode(Sha256::digest(script));
        assert!(policy.contains(&format!("; script-src 'sha256-{digest}'; ")), "{policy}");
        assert!(!script.is_empty() && !script.contains("</"), "{script}");
    }

    #[tokio::test]
    async fn a_fault_shows_only_its_fault_id() {
        let page = Page::problem(&Problem::internal("test", "a secret reason"));
        assert_eq!(page.status, StatusCode::INTERNAL_SERVER_ERROR);
        let (_, html) = rendered(page).await;
        assert!(html.contains("<code>err_") && !html.contains("secret"), "{html}");
    }
}
