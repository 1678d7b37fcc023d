import { readFile, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { CliError, messageOf } from '../exit.ts'

/** Paths of a module's folder. `src/main.ts` serves the module; `module.json` is its manifest. */
export interface Project {
  folder: string
  mainFile: string
  manifestFile: string
  /** The bundled program, for local tests. */
  programFile: string
  /** Folder of the image as an OCI layout. */
  imageFolder: string
}

/** Opens the module in a folder. Throws `CliError` if the folder contains no module. */
export async function openProject(folder = '.'): Promise<Project> {
  const absolute = resolve(folder)
  const project = {
    folder: absolute,
    mainFile: join(absolute, 'src/main.ts'),
    manifestFile: join(absolute, 'module.json'),
    programFile: join(absolute, 'dist/main.mjs'),
    imageFolder: join(absolute, 'dist/image'),
  }
  for (const file of [project.mainFile, project.manifestFile]) {
    const stats = await stat(file).catch(() => undefined)
    if (stats?.isFile()) continue
    throw new CliError('usage', `${file} is missing. Change to a module's folder, or create one: plat module new <id>`)
  }
  return project
}

/** Reads the manifest file. Throws `CliError` unless it contains a JSON object; the fields are not validated. */
export async function readManifest({ manifestFile }: Project): Promise<Record<string, unknown>> {
  const content = parseJsonFile(manifestFile, await readFile(manifestFile, 'utf8'))
  if (typeof content === 'object' && content !== null && !Array.isArray(content)) return { ...content }
  throw new CliError('usage', `${manifestFile} is not a JSON object.`)
}

function parseJsonFile(file: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new CliError('usage', `${file} is not valid JSON: ${messageOf(error)}`, error)
  }
}

/**
 * Writes the manifest only if its content has changed, so that the author's formatting is kept. Returns whether it was
 * written.
 */
export async function writeManifest(project: Project, manifest: object): Promise<boolean> {
  if (isDeepStrictEqual(await readManifest(project), { ...manifest })) return false
  await writeFile(project.manifestFile, `${JSON.stringify(manifest, null, 2)}\n`)
  return true
}
