import { afterAll, afterEach } from 'vitest'
import { endAll, showBesideFailure } from '../program.ts'

// Portal test files share a process. Each file ends the programs that it started.
afterEach(showBesideFailure)
afterAll(endAll)
