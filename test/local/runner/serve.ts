/** A platform with functions of a test's own, in a process of its own: `node serve.ts <data folder> <functions folder>`. */
import { startPlatform } from '@platform/local/platform'
import { parseSettings } from '@platform/local/settings'
import { stopOnSignals } from '@platform/local/signals'

const [dataDir = '', functionsDir = ''] = process.argv.slice(2)
const starting = startPlatform({ ...parseSettings({ PLAT_PORT: '0' }), dataDir, functionsDir })
stopOnSignals(async () => (await starting).stop())
const { url } = await starting
console.log(`Platform ready at ${url}`)
