/** `npm run build:functions`: builds every function as deployed into `dist/functions`. */
import { parseCommandLine } from '@platform/local/command-line'
import { buildFunctions, functionsDir } from './deploy/build.ts'

parseCommandLine(
  `npm run build:functions

Builds every function as deployed into dist/functions.`,
  {},
)
const count = await buildFunctions()
console.log(`${count} functions are in ${functionsDir}.`)
