import { checkRegularly } from '@platform/core/updates/check'
import { scheduled } from '@platform/http/schedule'

export const handler = scheduled('updates', checkRegularly)
