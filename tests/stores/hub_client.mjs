// Uploads or downloads the files of a repository with the official JavaScript client of the Hugging Face hub.
//   node hub_client.mjs upload|download URL TOKEN ORG/NAME FOLDER
// HUB_CLIENT is the folder in which `npm install @huggingface/hub` was run.
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const client = join(process.env.HUB_CLIENT, "node_modules/@huggingface/hub/dist/index.mjs");
const hub = await import(pathToFileURL(client));
const [action, hubUrl, accessToken, name, folder] = process.argv.slice(2);
const where = { repo: { type: "model", name }, hubUrl, accessToken };

async function upload() {
  const operations = [];
  for (const path of await readdir(folder))
    operations.push({ operation: "addOrUpdate", path, content: new Blob([await readFile(join(folder, path))]) });
  await hub.createRepo({ ...where, visibility: "private" });
  await hub.commit({ ...where, title: "Add all", operations });
}

async function download() {
  for await (const { path, type } of hub.listFiles({ ...where, recursive: true })) {
    if (type !== "file") continue;
    const blob = await hub.downloadFile({ ...where, path });
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), Buffer.from(await blob.arrayBuffer()));
  }
}

await { upload, download }[action]();
