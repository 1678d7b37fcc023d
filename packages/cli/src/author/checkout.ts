import { fileURLToPath } from 'node:url'

const at = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url))

/**
 * Paths in the source checkout that contains this command line. It provides the SDK, so that modules need no
 * installation of their own.
 */
export const checkout = {
  folder: at('.'),
  sdk: at('packages/sdk/src/index.ts'),
  libraries: at('node_modules'),
  /** The default data folder of `npm start`. */
  data: at('.platform'),
}
