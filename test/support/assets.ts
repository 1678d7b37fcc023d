import { buildAssets } from '@platform/local/assets'
import { temporaryFolder } from './temporary-folder.ts'

/** Only assets that build quickly. Tests of other assets build their own; `fuzz` requests all of them. */
const names = ['openapi.json', 'event-catalog.json', 'module-schema.json']
const fuzzNames = process.env['PLAT_VERIFY'] === undefined ? [] : ['docs.html', 'relay.mjs']

export async function setup(): Promise<() => Promise<void>> {
  const assets = await temporaryFolder()
  await buildAssets(assets.path, { names: [...names, ...fuzzNames] })
  process.env['PLAT_ASSETS_DIR'] = assets.path
  return async () => assets[Symbol.asyncDispose]()
}
