/** Whether a path equals a base or is below it, by whole segments. */
export const isUnder = (path: string, base: string): boolean => path === base || path.startsWith(`${base}/`)
