import { fileURLToPath } from 'node:url'

const pathInCheckout = (path: string): string => fileURLToPath(new URL(`../../../../${path}`, import.meta.url))

/**
 * Paths in the source checkout that contains this command line. The checkout provides the SDK, so that modules need no
 * installation of their own.
 */
export const checkout = {
  folder: pathInCheckout('.'),
  sdk: pathInCheckout('packages/sdk/src/index.ts'),
  libraries: pathInCheckout('node_modules'),
  /** The default data folder of `npm start`. */
  data: pathInCheckout('.platform'),
}
