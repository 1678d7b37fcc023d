import { startModuleRegistry } from '../../support/module-registry.ts'

/** A registry with modules. Import it before anything of the platform: its settings let the platform ask it. */
export const registry = await startModuleRegistry()
