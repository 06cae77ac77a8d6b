"""harness/ci/gitlab.yml: YAML, of the parts that GitLab reads, and its lines run as a runner runs them, in a folder with nothing else."""

import http.server
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = "id,lower,upper,size,offset\na,0,2,96,0\nb,1,3,64,96\nc,2,4,96,%d\n"


def job():
    """The job, read by Debian's python3-yaml: the environment under test has none."""
    if subprocess.run(["/usr/bin/python3", "-c", "import yaml"], capture_output=True).returncode != 0:
        raise unittest.SkipTest("no python3-yaml here")
    with open(os.path.join(ROOT, "harness", "ci", "gitlab.yml"), encoding="utf-8") as text:
        done = subprocess.run(["/usr/bin/python3", "-c", "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"],
                              stdin=text, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)[".memplan-gate"]


class Notes(http.server.BaseHTTPRequestHandler):
    """Takes a note as GitLab does."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.notes.append((self.path, self.headers["PRIVATE-TOKEN"], urllib.parse.parse_qs(body)["body"][0]))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_):
        pass


class Gitlab(unittest.TestCase):
    def setUp(self):
        self.job = job()
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name
        shutil.copytree(os.path.join(ROOT, "harness", "ci"), os.path.join(self.folder, "memplan", "harness", "ci"))
        for folder, offset in (("dumps", 160), ("dumps-of-main", 0)):
            os.mkdir(os.path.join(self.folder, folder))
            with open(os.path.join(self.folder, folder, "net.csv"), "w", encoding="ascii") as out:
                out.write(LIST % offset)

    def run_job(self, **variables):
        """Exit status and what was said, of the script's lines in one shell, as GitLab's runner joins them."""
        tools = os.path.dirname(sys.executable)
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": self.folder, **self.job["variables"], "PLANS": "dumps", **variables}
        done = subprocess.run(["bash", "-c", "set -eo pipefail\n" + "\n".join(self.job["script"])], cwd=self.folder, env=environment,
                              capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_its_keys_are_gitlabs(self):
        self.assertEqual(sorted(self.job), ["artifacts", "image", "script", "variables"])
        self.assertTrue(all(isinstance(line, str) for line in self.job["script"]))
        self.assertTrue(all(isinstance(value, str) for value in self.job["variables"].values()))
        self.assertEqual((self.job["artifacts"]["when"], list(self.job["artifacts"]["reports"])), ("always", ["junit"]))

    def test_its_lines_run(self):
        """Fault: the gate's status is lost, a variable does not reach it, or the artifacts are elsewhere."""
        status, said = self.run_job()
        self.assertEqual(status, 1, said)
        self.assertIn("above the optimum of 160", said)
        for name in ("comment.md", "net.csv.xml"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, self.job["variables"]["OUT"], name)), name)
        self.assertEqual(self.run_job(TOLERANCE="60%")[0], 0)
        status, said = self.run_job(AGAINST="dumps-of-main")
        self.assertEqual(status, 1, said)
        self.assertIn("above the baseline of 160", said)
        self.assertEqual(self.run_job(PLANS="dumps-of-main")[0], 0)
        self.assertEqual(self.run_job(PLANS="nothing")[0], 2)
        status, said = self.run_job(MAX_SLOWDOWN="10%", AGAINST="dumps-of-main")
        self.assertEqual((status, "no time of planning" in said), (2, True), said)

    def test_its_note_is_written(self):
        """Fault: the note is torn by the shell or YAML, or a refusal of the server hides the gate's status."""
        server = http.server.HTTPServer(("127.0.0.1", 0), Notes)
        server.notes = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        status, said = self.run_job(MEMPLAN_TOKEN="secret", CI_MERGE_REQUEST_IID="7", CI_PROJECT_ID="3",
                                    CI_API_V4_URL=f"http://127.0.0.1:{server.server_port}/api/v4")
        self.assertEqual((status, len(server.notes)), (1, 1), said)
        path, token, body = server.notes[0]
        self.assertEqual((path, token), ("/api/v4/projects/3/merge_requests/7/notes", "secret"))
        with open(os.path.join(self.folder, "memplan-gate", "comment.md"), encoding="utf-8") as f:
            self.assertEqual(body, f.read())
        self.assertIn("| net | minimalloc | - | 256 | - | 160 | +60.00 % | **beyond** |", body)

    def test_its_wheel_is_installed(self):
        made = [name for name in os.listdir(os.path.join(ROOT, "dist")) if name.endswith(".whl")]
        shutil.copy(os.path.join(ROOT, "dist", made[0]), self.folder)
        status, said = self.run_job(WHEEL=made[0], PLANS="dumps-of-main", PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        self.assertEqual(status, 0, said)
        status, said = self.run_job(WHEEL="missing-1.whl", PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        self.assertEqual(status, 1, said)
        self.assertIn("missing-1.whl", said)
