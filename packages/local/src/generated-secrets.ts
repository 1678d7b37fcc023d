import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { writeDurably } from './emulators/secrets/durable-file.ts'

/** Generates the secret at the first start. Only the owner of the data folder may read it. */
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
    const generatedSecret = await generate()
    writeDurably(path, `${generatedSecret.trimEnd()}\n`)
    return generatedSecret.trimEnd()
  }
}

const passwordFile = 'registry-password'

/** Returns the password of the only user who may write to the embedded registry. */
export const loadOrCreateRegistryPassword = (dataDir: string): Promise<string> =>
  loadOrCreateSecret(dataDir, passwordFile, () => randomBytes(24).toString('base64url'))

/** Rejects if no platform has run with this data folder. */
export const readRegistryPassword = async (dataDir: string): Promise<string> =>
  (await readFile(join(dataDir, passwordFile), 'utf8')).trimEnd()

const loadOrCreateSigningKey = (dataDir: string, name: string): Promise<string> =>
  loadOrCreateSecret(dataDir, name, async () => {
    const { generateKeyPair } = await import('@platform/oci/signature/key')
    return generateKeyPair().privateKeyPem
  })

/** Returns the private key (PEM) that signs the platform's own modules. */
export const loadOrCreateModuleSigningKey = (dataDir: string): Promise<string> =>
  loadOrCreateSigningKey(dataDir, 'module-signing-key.pem')

/** Returns the private key (PEM) that signs releases in the embedded registry. */
export const loadOrCreateReleaseSigningKey = (dataDir: string): Promise<string> =>
  loadOrCreateSigningKey(dataDir, 'release-signing-key.pem')

/** Rejects if no platform has run with this data folder. */
export const readReleaseSigningKey = (dataDir: string): Promise<string> =>
  readFile(join(dataDir, 'release-signing-key.pem'), 'utf8')
