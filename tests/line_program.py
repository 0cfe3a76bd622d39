"""A program that a script drives: a line of JSON on stdin is a question, a line on stdout its answer."""

import json
import subprocess

# Libraries write to stdout, too, so a line with an answer begins with this.
MARK = "answer "


class LineProgram:
    """A running program. It ends with the scope, an `ExitStack`."""

    def __init__(self, scope, command, environment=None):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = scope.enter_context(subprocess.Popen(command, env=environment, text=True, **pipes))

    def ask(self, question):
        print(json.dumps(question), file=self.process.stdin, flush=True)
        answer = next((line for line in self.process.stdout if line.startswith(MARK)), None)
        assert answer, f"{self.process.args[1]} ended without an answer to {question}"
        return json.loads(answer.removeprefix(MARK))
