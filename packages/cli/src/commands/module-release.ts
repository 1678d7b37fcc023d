import type { Command } from 'commander'
import { openProject } from '../author/project.ts'
import { CliError, exitCodes } from '../exit.ts'
import { type PrintOptions, showOne } from '../print/show.ts'
import { say } from '../print/write.ts'
import { addCommand, collectValues } from './add-command.ts'
import { addFolderCommand, forAuthors } from './module-author.ts'

export function addReleaseCommands(module: Command): void {
  addCommand(module, 'key <name>', 'create a signing key pair: <name>.key (secret) and <name>.pub', [
    'plat module key ada',
  ]).action(forAuthors(makeKey))
  addFolderCommand(module, 'push', 'push the built image with the tags <version> and latest', [
    'plat module push --key ada.key',
    'plat module push --to registry.example.com/modules/greeting --key ada.key',
  ])
    .option('--to <repository>', 'target repository (default: the one in module.json)')
    .option('--key <file>', 'sign with this private key')
    .action(forAuthors(push))
  addCommand(module, 'sign <image>', 'sign an image in a registry', [
    'plat module sign registry.example.com/modules/greeting:0.1.0 --key ada.key',
  ])
    .requiredOption('--key <file>', 'private key')
    .option('--legacy', 'sign in the format of cosign before version 3')
    .action(forAuthors(sign))
  addCommand(module, 'verify <image>', 'verify the signature of an image; exits with 1 if no key matches', [
    'plat module verify registry.example.com/modules/greeting:0.1.0 --key ada.pub',
  ])
    .requiredOption('--key <file>', 'public key; repeatable', collectValues)
    .action(forAuthors(verify))
}

async function makeKey(name: string, { json }: PrintOptions): Promise<void> {
  const { writeKeyPair } = await import('../author/keys.ts')
  const files = await writeKeyPair(name)
  if (json) return showOne({ json }, files)
  const { privateKey, publicKey } = files
  say(`Keep ${privateKey} secret. Platforms trust ${publicKey} through PLAT_MODULE_TRUSTED_KEYS.`)
}

interface PushOptions extends PrintOptions {
  dir?: string
  to?: string
  key?: string
}

async function push({ dir, to, key, json }: PushOptions): Promise<void> {
  const [{ pushProject }, { readSigningKey }] = await Promise.all([
    import('../author/push.ts'),
    import('../author/keys.ts'),
  ])
  const privateKeyPem = key === undefined ? undefined : await readSigningKey(key)
  const options = { ...(to !== undefined && { to }), ...(privateKeyPem !== undefined && { privateKeyPem }) }
  const { image, digest } = await pushProject(await openProject(dir), options)
  if (json) return showOne({ json }, { image, digest, isSigned: key !== undefined })
  say(`${image} pushed${key === undefined ? ', and not signed' : ' and signed'}: ${digest}`)
}

async function sign(
  image: string,
  { key, legacy, json }: PrintOptions & { key: string; legacy?: true },
): Promise<void> {
  const [{ signRemote }, { readSigningKey }] = await Promise.all([
    import('../author/sign.ts'),
    import('../author/keys.ts'),
  ])
  const digest = await signRemote(image, await readSigningKey(key), legacy ? 'tag' : 'referrer')
  if (json) return showOne({ json }, { image, digest })
  say(`${image} signed: ${digest}`)
}

async function verify(image: string, { key: files, json }: PrintOptions & { key: string[] }): Promise<void> {
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
