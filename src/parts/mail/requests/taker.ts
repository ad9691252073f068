/** Takes the requests `<id>.mail` that runs drop into their folders. Loads its code for the first one. */
import type { RequestTaker } from "../../../worker/request-taker.ts";

/** The extension of a request's file. */
export const REQUEST = ".mail";

export const mailRequests: RequestTaker = {
  ending: REQUEST,
  take: async (place, request) => {
    const { takeRequest } = await import("./take-request.ts");
    return await takeRequest(place, request);
  },
};
