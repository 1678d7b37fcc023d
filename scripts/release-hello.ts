/** `npm run release:hello`: builds the image of the reference module, and publishes it. */
import { explainError } from '@platform/cli/author/explain-error'
import { buildProject } from '@platform/cli/author/image'
import { readSigningKey } from '@platform/cli/author/keys'
import { openProject } from '@platform/cli/author/project'
import { pushProject } from '@platform/cli/author/push'
import { CliError } from '@platform/cli/exit'
import { parseCommandLine } from '@platform/local/command-line'
import { readCurrentCommit } from './release/commit.ts'
import { root } from './source.ts'

const usage = `npm run release:hello -- [options]

Builds the reference module as an OCI image into packages/hello/dist/image. With --registry, also publishes it to
REGISTRY/modules/hello as latest and as the hash of the current commit.

  --registry REGISTRY  such as registry.example.com; without it, nothing is published
  --key FILE           private key (PEM) to sign with
  --from IMAGE         base image with Node.js; default: the Node.js of this machine
  --platform PLATFORM  such as linux/arm64; default: this machine

Environment: PLAT_REGISTRY_USERNAME and PLAT_REGISTRY_PASSWORD; default: those of docker login.`

const text = { type: 'string' } as const
const options = { registry: text, key: text, from: text, platform: text } as const

/**
 * Returns the hash of the current commit. Throws `CliError` without a commit, and for uncommitted changes, which no
 * commit identifies.
 */
async function readRevision(): Promise<string> {
  const { id, isChanged } = await readCurrentCommit()
  if (id === undefined)
    throw new CliError('usage', 'The revision is the hash of a git commit: publish from a git clone.')
  if (isChanged) throw new CliError('usage', 'There are uncommitted changes. Commit them before you publish.')
  return id
}

async function release({ registry, key, from, platform }: Partial<Record<keyof typeof options, string>>) {
  const tags = registry === undefined ? [] : [await readRevision(), 'latest']
  const privateKeyPem = key === undefined ? undefined : await readSigningKey(key)
  const project = await openProject(`${root}packages/hello`)
  const base = from === undefined ? { withNode: true as const } : { from }
  const { image } = await buildProject(project, { ...base, ...(platform !== undefined && { platform }) })
  console.log(`Built ${image.digest} in ${project.imageFolder}.`)
  if (registry === undefined) return
  const signing = privateKeyPem !== undefined && { privateKeyPem }
  const pushedImage = await pushProject(project, { to: `${registry}/modules/hello`, tags, ...signing })
  console.log(
    `${pushedImage.image} and latest published${signing ? ' and signed' : ', and not signed'}: ${pushedImage.digest}`,
  )
}

const { values } = parseCommandLine(usage, { options })
try {
  await release(values)
} catch (error) {
  const failure = explainError(error)
  console.error(failure instanceof Error ? failure.message : failure)
  process.exitCode = failure instanceof CliError ? failure.exitCode : 2
}
