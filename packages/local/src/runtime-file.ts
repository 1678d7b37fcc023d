import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'

/** Addresses and credentials with which other programs of the same user access the running platform. */
const RuntimeFile = z.object({
  processId: z.number(),
  apiUrl: z.string(),
  secretsUrl: z.string(),
  dynamoDbUrl: z.string(),
  accessKeyId: z.string(),
  table: z.string(),
  adminTokenSecret: z.string(),
  /** The `PLAT_SECRET_…` settings of the functions. */
  secretNames: z.record(z.string(), z.string()),
  /** The embedded registry, with the only user who may write to it. */
  registry: z.object({ host: z.string(), username: z.string(), password: z.string() }),
})
export type RuntimeFile = z.infer<typeof RuntimeFile>

const pathIn = (dataDir: string): string => join(dataDir, 'runtime.json')

/** Replaces the file atomically. Only its owner may read it. */
export async function writeRuntimeFile(dataDir: string, content: RuntimeFile): Promise<void> {
  const draft = `${pathIn(dataDir)}.draft`
  await rm(draft, { force: true })
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  await rename(draft, pathIn(dataDir))
}

/** Rejects if there is no file. A killed platform leaves an outdated file. */
export async function readRuntimeFile(dataDir: string): Promise<RuntimeFile> {
  return RuntimeFile.parse(JSON.parse(await readFile(pathIn(dataDir), 'utf8')))
}

export const removeRuntimeFile = (dataDir: string): Promise<void> => rm(pathIn(dataDir), { force: true })
