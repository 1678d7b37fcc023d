import { functions } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { tasks } from '@platform/contract/task'

/** Functions that answer requests: `clusters`, `gateway/modules`, `portal`. */
export const apiFunctions: readonly string[] = [...Object.keys(functions), modulePaths.function, fallback.function]

/** All functions; their source is `functions/<name>.ts`. */
export const functionNames: readonly string[] = [...apiFunctions, ...Object.keys(tasks)]

/**
 * The portal's function never runs in two versions: files named by its page must be in the next response. It is shifted
 * with the API, so it is never newer.
 */
export const isSingleVersion = (functionName: string): boolean => functionName === fallback.function
