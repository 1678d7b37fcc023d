import { join } from 'node:path'
import { buildAssets } from '@platform/local/assets'
import { root } from '../../scripts/source.ts'

/** What functions hand out, but for what takes long to build and says nothing about requests. */
const handedOut = ['openapi.json', 'docs.html', 'event-catalog.json', 'module-schema.json', 'relay.mjs']

/** The folder of the files that functions hand out: built where they are older than their sources. */
export async function builtAssets(): Promise<string> {
  const folder = join(root, 'node_modules/.cache/verification-assets')
  await buildAssets(folder, { wants: handedOut })
  return folder
}
