import { fork } from 'node:child_process'
import { once } from 'node:events'
import { buildAssets } from '@platform/local/assets'
import { temporaryFolder } from './temporary-folder.ts'

/** Only assets that build quickly. Tests of other assets build their own. */
const assetNames = ['openapi.json', 'event-catalog.json', 'module-schema.json']

export async function setup(): Promise<() => Promise<void>> {
  const child = fork(new URL('emulators-process.ts', import.meta.url).pathname, { execArgv: [] })
  const [[endpoints], assets] = await Promise.all([once(child, 'message'), builtAssets()])
  Object.assign(process.env, endpoints as Record<string, string>, {
    PLAT_ASSETS_DIR: assets.path,
    AWS_REGION: 'eu-central-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
  })
  return async () => {
    child.disconnect()
    await Promise.all([once(child, 'exit'), assets[Symbol.asyncDispose]()])
  }
}

async function builtAssets() {
  const assets = await temporaryFolder()
  await buildAssets(assets.path, { names: assetNames })
  return assets
}
