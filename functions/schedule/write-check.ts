import { checkWrites } from '@platform/core/platform/write-check'
import { scheduled } from '@platform/http/schedule'

export const handler = scheduled('write-check', checkWrites, 'debug')
