import { functions } from '@platform/contract/index'
import { passages } from '@platform/contract/passage'
import { tasks } from '@platform/contract/task'

/** Functions that answer requests: `clusters`, `gateway/modules`. */
export const apiFunctions: readonly string[] = [...Object.keys(functions), passages.function]

/** All that the platform consists of; a file each, `functions/<name>.ts`. */
export const functionNames: readonly string[] = [...apiFunctions, ...Object.keys(tasks)]
