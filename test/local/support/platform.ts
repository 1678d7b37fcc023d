import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SQSClient } from '@aws-sdk/client-sqs'
import { filesByFunction } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { clientSettings } from '@platform/local/emulators/http/environment'
import { type Platform, startPlatform } from '@platform/local/platform'
import { parseSettings, type Settings } from '@platform/local/settings'
import { shortTestSettings } from '../../support/long.ts'

const echo = `export const handler = async (event) => ({ statusCode: 200, body: JSON.stringify({ path: event.rawPath }) })`
const idleSource = `export const handler = async () => ({})`

export async function writeFunctions(folder: string, sources: Record<string, string> = {}): Promise<string> {
  const functionsDir = join(folder, 'functions')
  const stubs = Object.fromEntries(Object.keys(filesByFunction).map((name) => [name, echo]))
  const others = {
    bootstrap: idleSource,
    'queue/webhooks': idleSource,
    'schedule/sweep': idleSource,
    [modulePaths.function]: echo,
    [fallback.function]: echo,
  }
  for (const [name, source] of Object.entries({ ...stubs, ...others, ...sources })) {
    const file = join(functionsDir, `${name}.ts`)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, source)
  }
  await writeFile(join(functionsDir, 'package.json'), '{"type":"module"}')
  return functionsDir
}

export async function settingsIn(
  folder: string,
  sources: Record<string, string> = {},
  environment: Record<string, string> = {},
): Promise<Settings> {
  return {
    ...parseSettings({ PLAT_PORT: '0', PLAT_DATA_DIR: join(folder, 'data'), ...shortTestSettings, ...environment }),
    functionsDir: await writeFunctions(folder, sources),
  }
}

export async function platformIn(folder: string, ...overrides: [Record<string, string>?, Record<string, string>?]) {
  const platform = await startPlatform(await settingsIn(folder, ...overrides), { log: () => undefined })
  return { ...platform, [Symbol.asyncDispose]: platform.stop }
}

export const queueClient = ({ emulators }: Pick<Platform, 'emulators'>): SQSClient =>
  new SQSClient(clientSettings(emulators.sqsUrl, emulators.accessKeyId))
