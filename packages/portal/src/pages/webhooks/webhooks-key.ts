/** The webhooks of the organisation, as queries know them. */
export const webhooksKey = ['webhooks']
