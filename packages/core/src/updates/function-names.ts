import { functions } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { tasks } from '@platform/contract/task'

/** Functions that answer requests: `clusters`, `gateway/modules`, `portal`. */
export const apiFunctions: readonly string[] = [...Object.keys(functions), modulePaths.function, fallback.function]

/** All that the platform consists of; a file each, `functions/<name>.ts`. */
export const functionNames: readonly string[] = [...apiFunctions, ...Object.keys(tasks)]

/**
 * Whether a function serves as one version and never as two side by side: what the portal's page names has to be found by the
 * next request. It asks the API, and is so never of a newer version than that.
 */
export const isSingleVersion = (functionName: string): boolean => functionName === fallback.function
