/** `npm run build:functions`: builds every function as deployed into `dist/functions`. */
import { buildFunctions, functionsDir } from './deploy/build.ts'

const count = await buildFunctions()
console.log(`${count} functions are in ${functionsDir}.`)
