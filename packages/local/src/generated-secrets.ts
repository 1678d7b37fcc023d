import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from './emulators/secrets/durable-file.ts'

/** A secret of this data folder that only its owner may read, generated at the first start. */
async function loadOrCreateSecret(
  dataDir: string,
  name: string,
  generate: () => string | Promise<string>,
): Promise<string> {
  const path = join(dataDir, name)
  try {
    return (await readFile(path, 'utf8')).trimEnd()
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'ENOENT') throw error
    const generated = await generate()
    writeDurably(path, `${generated.trimEnd()}\n`)
    return generated.trimEnd()
  }
}

const passwordFile = 'registry-password'

/** The password for writing to the embedded registry. */
export const loadOrCreateRegistryPassword = (dataDir: string): Promise<string> =>
  loadOrCreateSecret(dataDir, passwordFile, () => randomBytes(24).toString('base64url'))

/** The generated password of this folder; rejects if no platform has run on it. */
export const readRegistryPassword = async (dataDir: string): Promise<string> =>
  (await readFile(join(dataDir, passwordFile), 'utf8')).trimEnd()

const signingKey = (dataDir: string, name: string): Promise<string> =>
  loadOrCreateSecret(dataDir, name, async () => {
    const { generateKeyPair } = await import('@platform/oci/signature/key')
    return generateKeyPair().privateKeyPem
  })

/** The private key (PEM) that signs the platform's own modules. */
export const moduleSigningKey = (dataDir: string): Promise<string> => signingKey(dataDir, 'module-signing-key.pem')

/** The private key (PEM) that signs releases in the platform's own registry. */
export const releaseSigningKey = (dataDir: string): Promise<string> => signingKey(dataDir, 'release-signing-key.pem')

/** The generated release key of this folder; rejects if no platform has run on it. */
export const readReleaseSigningKey = (dataDir: string): Promise<string> =>
  readFile(join(dataDir, 'release-signing-key.pem'), 'utf8')
