import { portalPaths } from '@platform/contract/portal-paths'

/** Where built files lie that their names tell the content of. One that is not there is of another version. */
export const hashedFolder = '/assets/'

const patterns = portalPaths.map((path) => new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}/?$`))

/** Whether the portal has a page at a path. */
export const isPortalPath = (path: string): boolean => patterns.some((pattern) => pattern.test(path))
