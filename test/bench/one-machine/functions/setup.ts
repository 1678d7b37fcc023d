import { handler as setup } from '../../../../functions/setup.ts'

export const handler = setup
