import { relative } from 'node:path'
import { type Command, Option } from 'commander'
import type { Base } from '../author/base.ts'
import { openProject } from '../author/project.ts'
import { type Shown, showOne } from '../print/show.ts'
import { say } from '../print/write.ts'
import { addCommand } from './add-command.ts'

/** The commands of `plat module` that authors use. What they need is loaded when they run. */

interface InFolder extends Shown {
  dir?: string
}

/** What images can be made for, in the words of images. */
const platforms = ['linux/amd64', 'linux/arm64']

/** `plat module new`, `manifest` and `build`. */
export function addAuthorCommands(module: Command): void {
  addCommand(module, 'new <id>', 'write a new module into a folder of its name', [
    'plat module new greeting',
    'plat module new greeting --image registry.example.com/modules/greeting',
  ])
    .option('--image <repository>', 'where its images will be, if not in the registry of the platform on this machine')
    .action(forAuthors(create))
  inFolder(module, 'manifest', 'write what the code says into module.json, and check it', [
    'plat module manifest',
  ]).action(forAuthors(renew))
  inFolder(module, 'build', 'build the image into dist/image; no daemon is needed', [
    'plat module build',
    'plat module build --with-node    # where no Node.js is lent to it',
    'plat module build --platform linux/arm64 --from docker.io/library/node:24-slim    # for AWS Lambda',
  ])
    .option('--from <image>', 'an image to build on, such as one that brings Node.js')
    .addOption(new Option('--with-node', 'put the Node.js of this Linux machine into the image').conflicts('from'))
    .addOption(
      new Option('--platform <platform>', 'what it is made for, if not for what this machine is').choices(platforms),
    )
    .action(forAuthors(build))
}

/** A command in a module's folder. */
export const inFolder = (module: Command, name: string, description: string, examples: readonly string[]): Command =>
  addCommand(module, name, description, examples).option(
    '--dir <folder>',
    'the module, if it is not in the current folder',
  )

/** A command whose failures at registries and in the file system are put into words. */
export const forAuthors =
  <Args extends unknown[]>(run: (...args: Args) => Promise<void>) =>
  async (...args: Args): Promise<void> => {
    try {
      await run(...args)
    } catch (error) {
      throw (await import('../author/explain-error.ts')).explainError(error)
    }
  }

async function create(id: string, { image, json }: Shown & { image?: string }): Promise<void> {
  const { scaffold } = await import('../author/scaffold.ts')
  const folder = await scaffold(id, image)
  if (json) return showOne({ json }, { id, folder })
  say(`${folder} is a module that runs as it is. Next: cd ${relative('.', folder)} && plat module build`)
}

async function renew({ dir, json }: InFolder): Promise<void> {
  const { renewManifest } = await import('../author/manifest.ts')
  const project = await openProject(dir)
  const { manifest, isChanged } = await renewManifest(project)
  if (json) return showOne({ json }, manifest)
  say(`${project.manifestFile} is valid, and ${isChanged ? 'was brought up to date' : 'up to date'}.`)
}

async function build({ dir, json, ...base }: InFolder & Base): Promise<void> {
  const { buildProject } = await import('../author/image.ts')
  const { image, manifest } = await buildProject(await openProject(dir), base)
  const { id, version } = manifest.metadata
  if (json) return showOne({ json }, { id, version, digest: image.digest })
  say(`${id} ${version} is built: ${image.digest}. Next: plat module push --key <file>`)
}
