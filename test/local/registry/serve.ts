/** A registry in a process of its own: `node serve.ts <folder>`. */
import { startRegistry } from '@platform/local/registry/server'
import { password } from './support.ts'

const [folder = ''] = process.argv.slice(2)
const { host } = await startRegistry({ folder, port: 0, password, log: console.error })
console.log(`Registry ready at ${host}`)
