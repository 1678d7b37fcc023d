/** The query key of all webhooks. */
export const webhooksKey = ['webhooks']
