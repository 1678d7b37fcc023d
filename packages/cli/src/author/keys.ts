import { readFile, rm, writeFile } from 'node:fs/promises'
import { generateKeyPair, readPrivateKey, readPublicKey } from '@platform/oci/signature/key'
import type { TrustedKey } from '@platform/oci/signature/verify'
import { CliError, hasCode, messageOf } from '../exit.ts'

export interface KeyFiles {
  privateKey: string
  publicKey: string
}

/** Writes a new key pair to `<name>.key` and `<name>.pub`. Throws `CliError` if a file exists. */
export async function writeKeyPair(name: string): Promise<KeyFiles> {
  const base = name.replace(/\.(?:key|pub)$/, '')
  const files = { privateKey: `${base}.key`, publicKey: `${base}.pub` }
  const pair = generateKeyPair()
  await writeNewFile(files.privateKey, pair.privateKeyPem, 0o600)
  await writeNewFile(files.publicKey, pair.publicKeyPem, 0o644).catch(async (error: unknown) => {
    // Remove the private key, because without its public key it could be mistaken for part of another pair.
    await rm(files.privateKey)
    throw error
  })
  return files
}

async function writeNewFile(file: string, content: string, mode: number): Promise<void> {
  await writeFile(file, content, { flag: 'wx', mode }).catch((error: unknown) => {
    throw hasCode(error, 'EEXIST')
      ? new CliError('usage', `${file} already exists; nothing was written.`, error)
      : error
  })
}

/** Reads a private key in PEM format. Throws `CliError` if the file cannot be read or the key cannot sign. */
export async function readSigningKey(file: string): Promise<string> {
  const pem = await contentOf(file)
  try {
    readPrivateKey(pem)
    return pem
  } catch (error) {
    throw new CliError('usage', `Cannot sign with ${file}. ${reasonOf(pem)}`, error)
  }
}

function reasonOf(pem: string): string {
  if (/^-----BEGIN PUBLIC KEY/m.test(pem)) return 'It is a public key; use the private key.'
  if (/^-----BEGIN ENCRYPTED/m.test(pem))
    return 'It has a passphrase. Sign with the tool that created it, such as cosign.'
  return 'Use a PEM file with an ECDSA, Ed25519 or RSA key. Create one with: plat module key <name>'
}

/**
 * Reads a public key in PEM format. The name of the result is the path of the file. Throws `CliError` if the file
 * cannot be read or is not a public key.
 */
export async function readTrustedKey(file: string): Promise<TrustedKey> {
  const pem = await contentOf(file)
  if (readPublicKey(pem) !== undefined) return { name: file, pem }
  const reason = /PRIVATE KEY/.test(pem) ? 'It is a private key; use the public key.' : 'Use a PEM file.'
  throw new CliError('usage', `Cannot verify with ${file}. ${reason}`)
}

const contentOf = (file: string): Promise<string> =>
  readFile(file, 'utf8').catch((error: unknown) => {
    const advice = 'Create a key pair with: plat module key <name>'
    throw new CliError('usage', `Cannot read ${file} (${messageOf(error)}). ${advice}`, error)
  })
