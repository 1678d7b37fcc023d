import { generateKeyPair } from '@platform/oci/signature/key'
import { startModuleRegistry } from '../support/module-registry.ts'
import * as Release from '../support/release.ts'

/** A module registry with its settings. Import this file before the platform: `await vi.hoisted(() => import(…))`. */
export const moduleWorld = await startModuleRegistry()

const releases = 'platform/releases'
const { publicKeyPem: pem, privateKeyPem } = generateKeyPair()
Object.assign(process.env, moduleWorld.settings, {
  PLAT_RELEASE_SOURCE: `${moduleWorld.host}/${releases}`,
  PLAT_RELEASE_KEYS: JSON.stringify([{ name: 'releases', pem }]),
})

export const pushRelease = () => Release.pushRelease(moduleWorld.client, releases, '99.0.0', privateKeyPem)
