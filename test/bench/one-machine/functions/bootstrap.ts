import { handler as bootstrap } from '../../../../functions/bootstrap.ts'

export const handler = bootstrap
