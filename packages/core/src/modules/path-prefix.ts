/** Whether a path is a base, or lies below it, segment by segment. */
export const isUnder = (path: string, base: string): boolean => path === base || path.startsWith(`${base}/`)
