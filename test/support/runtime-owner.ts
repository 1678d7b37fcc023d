/** Runs one module until it is killed: `<mode> <folder> <image> <argument>`. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fetchImage } from '@platform/worker/runtimes/fetch-image'
import { Images } from '@platform/worker/runtimes/images'
import { type LocalMode, openLocalRuntime } from '@platform/worker/runtimes/local-runtime'
import { deploymentSpecOf } from './local-runtime.ts'
import { memoryRegistry } from './memory-registry.ts'
import { pushProgram } from './module-image.ts'

const [mode, folder = '', source = '', argument = ''] = process.argv.slice(2)
const registry = memoryRegistry()
const image = await pushProgram(registry, 'owned', await readFile(source, 'utf8'), {
  config: { Cmd: ['node', 'main.mjs', argument] },
})
const runtime = await openLocalRuntime({
  mode: mode as LocalMode,
  images: new Images(join(folder, 'images'), (name, folder) => fetchImage(() => registry, name, folder)),
  runFolder: join(folder, 'run'),
  tokenOf: async (id) => id,
  onLog: (_moduleId, line) => console.log(line),
})
const { isolation } = await runtime.deploy(deploymentSpecOf(image))
console.log(`It runs: ${isolation}`)
