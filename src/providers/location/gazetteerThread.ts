/** The thread that looks cities up: returns those of its data once, and ends. Started by index.ts. */
import { parentPort, workerData } from "node:worker_threads";
import { lowerPriority } from "../../base/priority.ts";
import { findCities } from "./gazetteer.ts";
import type { CityName } from "./place.ts";

lowerPriority(10);
parentPort!.postMessage(findCities(workerData as CityName[]));
