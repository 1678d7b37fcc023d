/** `npm run build:functions`: every function as the deployment takes it, into `dist/functions`. */
import { buildFunctions, functionsDir } from './deploy/build.ts'

const count = await buildFunctions()
console.log(`${count} functions are in ${functionsDir}.`)
