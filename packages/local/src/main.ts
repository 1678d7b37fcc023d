/** `npm start`: the whole platform in one process. */
import { run } from './run.ts'

await run()
