"""Quantizes models of the hub, or uploaded GGUF files, in a web form. See README.md."""

import html
import os
import time

import gradio as gr
import ggufmill

from jobs import CAN_CALIBRATE, KEPT_SECONDS, RECIPES, Full, Jobs, Wanted

jobs = Jobs()

STYLE = "footer {display: none !important} .block {min-width: 0 !important} #log {font-family: monospace; white-space: pre-wrap}"
INTRODUCTION = f"""# GGUF files of a model
Converts and quantizes with [ggufmill](https://pypi.org/project/ggufmill/) {html.escape(ggufmill.__version__)}, which writes the bytes of
llama.cpp's own tools. You may close this page while a job runs: opened again on the same device, it shows the job."""


def bar(job):
    """Returns the state of a job as HTML."""
    titles = {"waiting": "Waiting", "running": "Running", "done": "Done", "failed": "Failed", "stopped": "Stopped"}
    share = 100 if job.state == "done" else round(100 * job.share)
    text = "" if job.is_over() else html.escape(job.step)
    return (f'<div id="job-state" data-state="{job.state}"><b>{titles[job.state]}</b> {text}'
            f'<progress style="width: 100%" max="100" value="{share}">{share} %</progress></div>')


def result(job):
    """Returns what a finished job has made, or why it failed, in Markdown."""
    if job.state == "failed":
        return "### The job failed\n```\n" + job.error.replace("```", "'''") + "\n```"
    if job.state != "done":
        return ""
    if job.repository():
        address = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        return f"### Published: [{job.repository()}]({address}/{job.repository()})"
    return "### Files to download"


def report(job):
    page = job.text_of("report.html") if job.state == "done" else ""
    if not page:
        return ""
    return f'<iframe title="Report" sandbox="allow-scripts" style="width: 100%; height: 40rem; border: 0" srcdoc="{html.escape(page)}"></iframe>'


def without_front_matter(card):
    return card.split("\n---\n", 1)[-1] if card.startswith("---\n") else card


def shown(job):
    """Returns the values of all fields that show a job."""
    over = job.is_over()
    files = [] if job.repository() else job.files()
    card = without_front_matter(job.text_of("README.md")) if job.state == "done" else ""
    return (bar(job), "\n".join(job.log[-20:]), result(job), gr.update(value=files or None, visible=bool(files)),
            gr.update(value=card, visible=bool(card)), gr.update(value=report(job), visible=job.state == "done"),
            gr.update(value="Stop", visible=not over), gr.update(value="Start", interactive=over))


def follow(identifier):
    """Shows a job until it has ended. The job itself does not depend on it."""
    job = jobs.find(identifier)
    if job is None:
        return
    while True:
        is_over = job.is_over()
        yield shown(job)
        if is_over:
            return
        time.sleep(0.5)


def start(identifier, model, upload, recipes, size, calibrates, repository, visibility, token):
    """Starts a job, or shows what is wrong. Returns its identifier, the message, and the token field, emptied."""
    earlier = jobs.find(identifier)
    if earlier is not None and not earlier.is_over():
        return identifier, "Your earlier job still runs: wait for it, or stop it.", gr.update()
    wanted = Wanted(model=model, upload=upload or "", recipes=tuple(recipes or ()), size=size, calibrates=bool(calibrates),
                    repository=repository, is_private=visibility == "private", token=token)
    problems = wanted.problems()
    if problems:
        return identifier, "\n".join(f"- {each}" for each in problems), gr.update()
    try:
        return jobs.start(wanted).id, "", ""
    except Full as full:
        return identifier, str(full), gr.update()


def stop(identifier):
    job = jobs.find(identifier)
    if job is not None:
        job.stop()


with gr.Blocks(title="GGUF files of a model", delete_cache=(3600, KEPT_SECONDS)) as page:
    identifier = gr.BrowserState("", storage_key="ggufmill-job", secret="ggufmill")
    gr.Markdown(INTRODUCTION)
    with gr.Row():
        with gr.Column(min_width=280):
            model = gr.Textbox(label="Model of the hub", placeholder="ORG/NAME", elem_id="model",
                               info="A checkpoint, or with a type a GGUF file: ORG/NAME:BF16")
            upload = gr.File(label="Or a GGUF file", file_types=[".gguf"], type="filepath", elem_id="upload", height=120)
            recipes = gr.CheckboxGroup(RECIPES, value=["Q4_K_M"], label="Types", elem_id="types")
            size = gr.Textbox(label="And a file of this size", placeholder="5GiB", elem_id="size",
                              info="Types are chosen by measurement, so that the file has this size")
            calibrates = gr.Checkbox(label="Calibrate", value=False, interactive=CAN_CALIBRATE, elem_id="calibrate",
                                     info="Chooses levels for the inputs of each matrix" if CAN_CALIBRATE
                                     else "Not available: this Space has no torch and transformers")
        with gr.Column(min_width=280):
            repository = gr.Textbox(label="Publish to", placeholder="YOUR-NAME/NAME-GGUF", elem_id="repository",
                                    info="Empty: files to download")
            visibility = gr.Radio(["public", "private"], value="public", label="A new repository is", elem_id="visibility")
            token = gr.Textbox(label="Token", type="password", elem_id="token",
                               info="That may write there; for a private or gated model, also read it. Kept until the job ends")
            begin = gr.Button("Start", variant="primary", elem_id="start")
            halt = gr.Button("Stop", visible=False, elem_id="stop")
            problems = gr.Markdown(elem_id="problems")
            state = gr.HTML(elem_id="state")
            outcome = gr.Markdown(elem_id="outcome")
            files = gr.File(label="Files", visible=False, file_count="multiple", elem_id="files")
            log = gr.Textbox(label="Messages", lines=5, max_lines=10, elem_id="log")
    card = gr.Markdown(visible=False, elem_id="card", container=True)
    figures = gr.HTML(visible=False, elem_id="report")

    view = [state, log, outcome, files, card, figures, halt, begin]
    begin.click(start, [identifier, model, upload, recipes, size, calibrates, repository, visibility, token],
                [identifier, problems, token], api_name=False).then(follow, identifier, view, concurrency_limit=None, api_name=False)
    halt.click(stop, identifier, None, api_name=False)
    page.load(follow, identifier, view, concurrency_limit=None, api_name=False)

if __name__ == "__main__":
    page.queue(default_concurrency_limit=None).launch(css=STYLE)
