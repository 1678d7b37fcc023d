import { readFile, rm, writeFile } from 'node:fs/promises'
import { generateKeyPair, readPrivateKey, readPublicKey } from '@platform/oci/signature/key'
import type { TrustedKey } from '@platform/oci/signature/verify'
import { CliError, hasCode, messageOf } from '../exit.ts'

/** Files of a new key pair: the secret one, and the one for everybody. */
export interface KeyFiles {
  privateKey: string
  publicKey: string
}

/** Writes a new key pair into `<name>.key` and `<name>.pub`. Throws `Failure` rather than to replace one. */
export async function writeKeyPair(name: string): Promise<KeyFiles> {
  const base = name.replace(/\.(?:key|pub)$/, '')
  const files = { privateKey: `${base}.key`, publicKey: `${base}.pub` }
  const pair = generateKeyPair()
  await writeNew(files.privateKey, pair.privateKeyPem, 0o600)
  await writeNew(files.publicKey, pair.publicKeyPem, 0o644).catch(async (error: unknown) => {
    // Half a pair would be taken for the other half of another.
    await rm(files.privateKey)
    throw error
  })
  return files
}

async function writeNew(file: string, content: string, mode: number): Promise<void> {
  await writeFile(file, content, { flag: 'wx', mode }).catch((error: unknown) => {
    throw hasCode(error, 'EEXIST')
      ? new CliError('usage', `${file} exists already, and is left as it is.`, error)
      : error
  })
}

/** A private key (PEM) that can sign. Throws `Failure` where the file has none. */
export async function readSigningKey(file: string): Promise<string> {
  const pem = await contentOf(file)
  try {
    readPrivateKey(pem)
    return pem
  } catch (error) {
    throw new CliError('usage', `${file} cannot be signed with. ${reasonOf(pem)}`, error)
  }
}

function reasonOf(pem: string): string {
  if (/^-----BEGIN PUBLIC KEY/m.test(pem)) return 'It is a public key; the private one is wanted.'
  if (/^-----BEGIN ENCRYPTED/m.test(pem)) return 'It has a passphrase: sign with the tool that made it, such as cosign.'
  return 'It has to be a PEM text of an ECDSA, Ed25519 or RSA key. plat module key <name> makes one.'
}

/** A public key, under the name of its file. Throws `Failure` where the file has none. */
export async function readTrustedKey(file: string): Promise<TrustedKey> {
  const pem = await contentOf(file)
  if (readPublicKey(pem) !== undefined) return { name: file, pem }
  const reason = /PRIVATE KEY/.test(pem) ? 'It is a private key; the public one is wanted.' : 'It has to be a PEM text.'
  throw new CliError('usage', `${file} cannot be verified with. ${reason}`)
}

const contentOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    const advice = 'plat module key <name> makes a key pair.'
    throw new CliError('usage', `${file} cannot be read (${messageOf(error)}). ${advice}`, error)
  })
