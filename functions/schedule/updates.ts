import { checkRegularly } from '@platform/core/update/check'
import { scheduled } from '@platform/http/schedule'

export const handler = scheduled('updates', checkRegularly)
