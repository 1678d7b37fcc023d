import { filesByFunction } from '@platform/contract/index'
import { fallback, modulePaths } from '@platform/contract/passage'
import { tasks } from '@platform/contract/task'

/** Functions behind the gateway, such as `clusters`, `gateway/modules` and `portal`. */
export const apiFunctions: readonly string[] = [
  ...Object.keys(filesByFunction),
  modulePaths.function,
  fallback.function,
]

export const functionNames: readonly string[] = [...apiFunctions, ...Object.keys(tasks)]

/**
 * The portal never serves in two versions at once, because a page requests files of the same build. Its traffic is
 * shifted only when the share of the API reaches 100 %.
 */
export const isSingleVersion = (functionName: string): boolean => functionName === fallback.function
