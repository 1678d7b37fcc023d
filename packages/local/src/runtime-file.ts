import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as z from 'zod'

/** How another program of the same user finds the running platform. */
const RuntimeFile = z.object({
  processId: z.number(),
  apiUrl: z.string(),
  secretsUrl: z.string(),
  dynamoDbUrl: z.string(),
  accessKeyId: z.string(),
  table: z.string(),
  adminTokenSecret: z.string(),
  /** Core's own name for it, if absent. */
  signingKeysSecret: z.string().optional(),
  /** The embedded registry, and the one user who may write there. */
  registry: z.object({ host: z.string(), username: z.string(), password: z.string() }),
})
export type RuntimeFile = z.infer<typeof RuntimeFile>

const pathIn = (dataDir: string): string => join(dataDir, 'runtime.json')

/** Writes the file whole or not at all; only its owner can read it. */
export async function writeRuntimeFile(dataDir: string, content: RuntimeFile): Promise<void> {
  const draft = `${pathIn(dataDir)}.draft`
  await rm(draft, { force: true })
  await writeFile(draft, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 })
  await rename(draft, pathIn(dataDir))
}

/** Rejects when no platform has written it; a platform that was killed leaves it behind. */
export async function readRuntimeFile(dataDir: string): Promise<RuntimeFile> {
  return RuntimeFile.parse(JSON.parse(await readFile(pathIn(dataDir), 'utf8')))
}

export const removeRuntimeFile = (dataDir: string): Promise<void> => rm(pathIn(dataDir), { force: true })
