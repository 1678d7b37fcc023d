import type { Command } from 'commander'
import { openProject } from '../author/project.ts'
import { exitCodes, CliError } from '../exit.ts'
import { type Shown, showOne } from '../print/show.ts'
import { say } from '../print/write.ts'
import { addCommand, several } from './add-command.ts'
import { forAuthors, inFolder } from './module-author.ts'

/** The commands of `plat module` for images that leave the author's machine. What they need is loaded when they run. */

/** `plat module key`, `push`, `sign` and `verify`. */
export function addReleaseCommands(module: Command): void {
  addCommand(module, 'key <name>', 'make a key pair to sign with: <name>.key, which is secret, and <name>.pub', [
    'plat module key ada',
  ]).action(forAuthors(makeKey))
  inFolder(module, 'push', 'push the built image, under its version and latest', [
    'plat module push --key ada.key',
    'plat module push --to registry.example.com/modules/greeting --key ada.key',
  ])
    .option('--to <repository>', 'where to, instead of what module.json says')
    .option('--key <file>', 'sign it with this private key')
    .action(forAuthors(push))
  addCommand(module, 'sign <image>', 'sign an image that is in a registry', [
    'plat module sign registry.example.com/modules/greeting:0.1.0 --key ada.key',
  ])
    .requiredOption('--key <file>', 'the private key')
    .option('--legacy', 'as cosign did before version 3, beside the image under a tag')
    .action(forAuthors(sign))
  addCommand(module, 'verify <image>', 'say whether one of some keys has signed an image; ends with 1 if not', [
    'plat module verify registry.example.com/modules/greeting:0.1.0 --key ada.pub',
  ])
    .requiredOption('--key <file>', 'a public key; may be repeated', several)
    .action(forAuthors(verify))
}

async function makeKey(name: string, { json }: Shown): Promise<void> {
  const { writeKeyPair } = await import('../author/keys.ts')
  const files = await writeKeyPair(name)
  if (json) return showOne({ json }, files)
  const { privateKey, publicKey } = files
  say(`Keep ${privateKey} to yourself. A platform that shall trust it gets ${publicKey}: PLAT_MODULE_TRUSTED_KEYS.`)
}

interface Push extends Shown {
  dir?: string
  to?: string
  key?: string
}

async function push({ dir, to, key, json }: Push): Promise<void> {
  const [{ pushProject }, { readSigningKey }] = await Promise.all([
    import('../author/push.ts'),
    import('../author/keys.ts'),
  ])
  const privateKeyPem = key === undefined ? undefined : await readSigningKey(key)
  const wish = { ...(to !== undefined && { to }), ...(privateKeyPem !== undefined && { privateKeyPem }) }
  const { image, digest } = await pushProject(await openProject(dir), wish)
  if (json) return showOne({ json }, { image, digest, isSigned: key !== undefined })
  say(`${image} is pushed${key === undefined ? ', and not signed' : ' and signed'}: ${digest}`)
}

async function sign(image: string, { key, legacy, json }: Shown & { key: string; legacy?: true }): Promise<void> {
  const [{ signRemote }, { readSigningKey }] = await Promise.all([
    import('../author/sign.ts'),
    import('../author/keys.ts'),
  ])
  const digest = await signRemote(image, await readSigningKey(key), legacy ? 'tag' : 'referrer')
  if (json) return showOne({ json }, { image, digest })
  say(`${image} is signed: ${digest}`)
}

async function verify(image: string, { key: files, json }: Shown & { key: string[] }): Promise<void> {
  const [{ verifyRemote }, { readTrustedKey }] = await Promise.all([
    import('../author/sign.ts'),
    import('../author/keys.ts'),
  ])
  const verdict = await verifyRemote(image, await Promise.all(files.map(readTrustedKey)))
  if (!verdict.isVerified) {
    if (!json) throw new CliError('refused', `${image} is not verified: ${verdict.reason}`)
    process.exitCode = exitCodes.refused
  }
  if (json) return showOne({ json }, { image, ...verdict })
  if (verdict.isVerified) say(`${image} is signed by ${verdict.by}: ${verdict.digest}`)
}
