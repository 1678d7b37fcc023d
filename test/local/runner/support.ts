import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { SQSClient } from '@aws-sdk/client-sqs'
import { functions } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { type Platform, startPlatform } from '@platform/local/platform'
import { parseSettings, type Settings } from '@platform/local/settings'

/** A folder that is gone after use. */
export async function temporaryFolder() {
  const path = await mkdtemp(join(tmpdir(), 'runner-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

const echo = `export const handler = async (event) => ({ statusCode: 200, body: JSON.stringify({ path: event.rawPath }) })`
const idle = `export const handler = async () => ({})`

/** Writes a folder of functions: those given as source text, and simple ones for the rest of the platform. */
export async function writeFunctions(folder: string, sources: Record<string, string> = {}): Promise<string> {
  const functionsDir = join(folder, 'functions')
  const simple = Object.fromEntries(Object.keys(functions).map((name) => [name, echo]))
  const others = {
    bootstrap: idle,
    'queue/jobs': idle,
    'schedule/sweep': idle,
    [modulePaths.function]: echo,
    [fallback.function]: echo,
  }
  const all = { ...simple, ...others, ...sources }
  for (const [name, source] of Object.entries(all)) {
    const file = join(functionsDir, `${name}.ts`)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, source)
  }
  await writeFile(join(functionsDir, 'package.json'), '{"type":"module"}')
  return functionsDir
}

/** Settings of a platform that lives in a folder and disturbs no other. */
export async function settingsIn(
  folder: string,
  sources: Record<string, string> = {},
  environment: Record<string, string> = {},
): Promise<Settings> {
  return {
    ...parseSettings({ PLAT_PORT: '0', PLAT_DATA_DIR: join(folder, 'data'), ...environment }),
    functionsDir: await writeFunctions(folder, sources),
  }
}

/** A whole platform with functions of the test's own; `await using` stops it. */
export async function platformIn(
  folder: string,
  sources: Record<string, string> = {},
  environment: Record<string, string> = {},
) {
  const platform = await startPlatform(await settingsIn(folder, sources, environment), { log: () => undefined })
  return { ...platform, [Symbol.asyncDispose]: platform.stop }
}

/** A client of a platform's queues. */
export const queueClient = ({ standIns }: Platform): SQSClient =>
  new SQSClient(clientSettings(standIns.sqsUrl, standIns.accessKeyId))
