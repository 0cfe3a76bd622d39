"""Free times of next week, as an assistant finds them."""

import datetime

DAYS = 7


async def next_week(one):
    """The date of next Monday, from the date where the workspace is."""
    today = datetime.date.fromisoformat((await one.call("whoami"))["today"])
    return today + datetime.timedelta(days=DAYS - today.weekday())


async def free_times(one, scene, monday):
    """The times of the week from this date, as `date` and `time` of a booking. `scene` names contact and calendar."""
    found = await one.call("find_free_times", from_=str(monday), days=DAYS, **scene)
    [calendar] = found["calendars"]
    dates = [day["date"] for day in calendar["days"]]
    assert dates == [str(monday + datetime.timedelta(days=number)) for number in range(DAYS)], dates
    return [{"date": day["date"], "time": slot} for day in calendar["days"] for slot in day["slots"]]
