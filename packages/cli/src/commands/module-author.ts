import { relative } from 'node:path'
import { type Command, Option } from 'commander'
import type { Base } from '../author/base.ts'
import { openProject } from '../author/project.ts'
import { type PrintOptions, showOne } from '../print/show.ts'
import { say } from '../print/write.ts'
import { addCommand } from './add-command.ts'

// Dependencies of these commands are loaded on demand, so that other commands start quickly.

interface FolderOptions extends PrintOptions {
  dir?: string
}

const platforms = ['linux/amd64', 'linux/arm64']

export function addAuthorCommands(module: Command): void {
  addCommand(module, 'new <id>', 'create a module in a new folder', [
    'plat module new greeting',
    'plat module new greeting --image registry.example.com/modules/greeting',
  ])
    .option('--image <repository>', "image repository (default: the local platform's registry)")
    .action(forAuthors(create))
  addFolderCommand(module, 'manifest', 'update module.json from the code and validate it', [
    'plat module manifest',
  ]).action(forAuthors(renew))
  addFolderCommand(module, 'build', 'build the image into dist/image, without a daemon', [
    'plat module build',
    'plat module build --with-node    # if the runtime provides no Node.js',
    'plat module build --platform linux/arm64 --from docker.io/library/node:24-slim    # for AWS Lambda',
  ])
    .option('--from <image>', 'base image, such as one with Node.js')
    .addOption(new Option('--with-node', "include this Linux machine's Node.js").conflicts('from'))
    .addOption(new Option('--platform <platform>', 'target platform (default: this machine)').choices(platforms))
    .action(forAuthors(build))
}

/** Adds a command that runs in a module's folder, with the option `--dir`. */
export const addFolderCommand = (
  module: Command,
  name: string,
  description: string,
  examples: readonly string[],
): Command =>
  addCommand(module, name, description, examples).option('--dir <folder>', 'module folder (default: current folder)')

/** Adds advice to registry and file system errors of a command. */
export const forAuthors =
  <Args extends unknown[]>(run: (...args: Args) => Promise<void>) =>
  async (...args: Args): Promise<void> => {
    try {
      await run(...args)
    } catch (error) {
      throw (await import('../author/explain-error.ts')).explainError(error)
    }
  }

async function create(id: string, { image, json }: PrintOptions & { image?: string }): Promise<void> {
  const { scaffold } = await import('../author/scaffold.ts')
  const folder = await scaffold(id, image)
  if (json) return showOne({ json }, { id, folder })
  say(`Created ${folder}. Next: cd ${relative('.', folder)} && plat module build`)
}

async function renew({ dir, json }: FolderOptions): Promise<void> {
  const { renewManifest } = await import('../author/manifest.ts')
  const project = await openProject(dir)
  const { manifest, isChanged } = await renewManifest(project)
  if (json) return showOne({ json }, manifest)
  say(`${project.manifestFile} is valid and ${isChanged ? 'was updated' : 'up to date'}.`)
}

async function build({ dir, json, ...base }: FolderOptions & Base): Promise<void> {
  const { buildProject } = await import('../author/image.ts')
  const { image, manifest } = await buildProject(await openProject(dir), base)
  const { id, version } = manifest.metadata
  if (json) return showOne({ json }, { id, version, digest: image.digest })
  say(`${id} ${version} built: ${image.digest}. Next: plat module push --key <file>`)
}
