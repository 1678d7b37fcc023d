import { buildAssets } from '@platform/local/assets'
import { temporaryFolder } from './temporary-folder.ts'

/** Only assets that build quickly. Tests of other assets build their own. */
const names = ['openapi.json', 'event-catalog.json', 'module-schema.json']

export async function setup(): Promise<() => Promise<void>> {
  const assets = await temporaryFolder()
  await buildAssets(assets.path, { names })
  process.env['PLAT_ASSETS_DIR'] = assets.path
  return async () => assets[Symbol.asyncDispose]()
}
