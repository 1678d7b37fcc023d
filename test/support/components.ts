import { installComponents } from '../../rehearsal/graph/components.ts'

/** Before all tests about the deployment, once: what it is made of is unpacked. */
export const setup = (): Promise<void> => installComponents()
