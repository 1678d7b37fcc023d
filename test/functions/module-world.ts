import { startModuleRegistry } from '../support/module-registry.ts'

/** Import this before anything of the platform (`await vi.hoisted(() => import(…))`): a registry that it may ask. */
export const moduleWorld = await startModuleRegistry()
Object.assign(process.env, moduleWorld.settings)
