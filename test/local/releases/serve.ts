/** A platform with functions of a test's own that says where it is updated: `node serve.ts <data folder> <functions folder>`. */
import { startPlatform } from '@platform/local/platform'
import { parseSettings } from '@platform/local/settings'
import { stopOnSignals } from '@platform/local/signals'

const [dataDir = '', functionsDir = ''] = process.argv.slice(2)
const starting = startPlatform({ ...parseSettings({ PLAT_PORT: '0', PLAT_REGISTRY_PORT: '0' }), dataDir, functionsDir })
stopOnSignals(async () => (await starting).stop())
const { url, updateHost } = await starting
console.log(`Platform ready at ${JSON.stringify({ url, updateHost })}`)
